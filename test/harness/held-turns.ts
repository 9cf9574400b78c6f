/**
 * Callbacks that a file passes to `setImmediate` wait until `release`, as if one turn of the event loop took that long. Calls that a test
 * makes one after another then share what the file shares among the calls of one turn. Callbacks of other files run as usual. `count`: the
 * number of waiting callbacks.
 */
export function holdTurnsOf(file: string): { readonly count: number; release(): void } & Disposable {
  const held: (() => void)[] = [];
  const real = globalThis.setImmediate;
  globalThis.setImmediate = ((run: (...given: unknown[]) => void, ...given: unknown[]) => {
    const caller = new Error("Who calls").stack?.split("\n")[2];
    if (!caller?.includes(`/${file}:`)) return real(run, ...given);
    held.push(() => run(...given));
    return undefined;
  }) as typeof setImmediate;
  const release = (): void => {
    globalThis.setImmediate = real;
    for (const run of held.splice(0)) run();
  };
  return {
    get count() {
      return held.length;
    },
    release,
    [Symbol.dispose]: release,
  };
}
