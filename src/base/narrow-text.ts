/** Matches a text in which each character is one column wide: ASCII, the signs of the console, and the lines and blocks of pictures. */
export const NARROW = /^[ -~°·–…−≠←-↓─-■▲▴▸▾◆○●◐★✓✗]*$/
