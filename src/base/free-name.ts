/**
 * Makes something under this name, or with `-2`, `-3` and so on appended while the name is taken: then `make` throws EEXIST.
 * @throws any other error of `make`, and EEXIST after `most` names
 */
export function underFreeName<T>(name: string, make: (name: string) => T, most = Number.POSITIVE_INFINITY): T {
  for (let count = 1; ; count += 1) {
    try {
      return make(count === 1 ? name : `${name}-${count}`)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || count >= most) throw error
    }
  }
}
