/**
 * Lets callers that ask for the same key in one turn of the event loop share one read. Under load many requests with one credential arrive in one
 * turn. The read begins after that turn, so no caller gets a result from before its question. This also holds for changes by other processes.
 *
 * @param read - reads what stands under the key; its rejection reaches every caller that shares it.
 */
export function readOncePerTurn<T>(read: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const ofThisTurn = new Map<string, Promise<T>>();
  const readAfterTurn = async (key: string): Promise<T> => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    ofThisTurn.delete(key);
    return read(key);
  };
  return (key) => {
    const reading = ofThisTurn.get(key) ?? readAfterTurn(key);
    ofThisTurn.set(key, reading);
    return reading;
  };
}
