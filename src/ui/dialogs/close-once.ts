/** A dialog may be closed by its own key and from outside, in any order: it tells so once. */
export function closeOnce(onClose: () => void): () => void {
  let isClosed = false
  return () => {
    if (isClosed) return
    isClosed = true
    onClose()
  }
}
