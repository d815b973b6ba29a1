/** `1 job`, `3 jobs`; `nouns`: the plural, if it is not the noun with an s. */
export const counted = (count: number, noun: string, nouns = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : nouns}`
