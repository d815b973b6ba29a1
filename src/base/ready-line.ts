/** A line in the output of a service that an engine runs: where it answers, as an IPv4 address and a port. */
export const readyLine = (address: string, port: string): string => `--- ready ${address} ${port} ---`
