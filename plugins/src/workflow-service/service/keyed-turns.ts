/** Calls work with the same id one after another, in this process. */
export type InTurn = <T>(id: string, work: () => Promise<T>) => Promise<T>;

/** Without turns, many writers of one record in one process would conflict with each other. */
export function createTurns(): InTurn {
  const last = new Map<string, Promise<unknown>>();
  return (id, work) => {
    const done = (last.get(id) ?? Promise.resolve()).then(work);
    const settled: Promise<unknown> = done.then(forget, forget);
    last.set(id, settled);
    return done;

    function forget(): void {
      if (last.get(id) === settled) last.delete(id);
    }
  };
}
