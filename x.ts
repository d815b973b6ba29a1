import { importInventory } from './src/inventory/import/import-inventory.ts'
