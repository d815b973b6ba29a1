/** Text that differs from host to host: `%h` name, `%n` number, `%u` user, `%a` address, `%%` a percent sign. Pure. */

export type MacroHost = {
  readonly host: string
  readonly number: number
  readonly user: string
  readonly address: string
}

export function expandMacro(template: string, host: MacroHost): string {
  return template.replace(/%([hnua%])/g, (_, letter: string) => {
    switch (letter) {
      case 'h':
        return host.host
      case 'n':
        return String(host.number)
      case 'u':
        return host.user
      case 'a':
        return host.address
      default:
        return '%'
    }
  })
}

/** What a user's script is told of the host, as environment variables. */
export function macroEnvironment(host: MacroHost): Record<string, string> {
  return {
    MUSTER_HOST: host.host,
    MUSTER_NUMBER: String(host.number),
    MUSTER_USER: host.user,
    MUSTER_ADDRESS: host.address,
  }
}
