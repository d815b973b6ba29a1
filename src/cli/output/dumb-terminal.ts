/** Shell buffers of Emacs, expect and serial loggers show escape sequences as they are, and set TERM to dumb. */
export const isDumb = ({ TERM }: Readonly<Record<string, string | undefined>>): boolean => TERM === 'dumb'
