/** The part of node-pty that is used. The package is installed under another name, which its own types insist on. */
declare module 'node-pty' {
  export interface IPty {
    readonly pid: number
    resize(columns: number, rows: number): void
    onExit(listener: (end: { exitCode: number; signal?: number }) => void): unknown
  }

  export function spawn(
    file: string,
    args: string[],
    options: {
      name: string
      cols: number
      rows: number
      env: Record<string, string>
      encoding: null
      cwd?: string
    },
  ): IPty
}
