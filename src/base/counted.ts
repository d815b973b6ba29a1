/** `1 job`, `3 jobs`; `nouns`: unless it ends with an s. */
export const counted = (count: number, noun: string, nouns = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : nouns}`
