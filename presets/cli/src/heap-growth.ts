import { setFlagsFromString } from "node:v8";

/** V8 collects the old generation when it is this much larger than after the last collection. Its own rule allows up to four times the size. */
const PERCENT = 60;

/**
 * Keeps the garbage of a service small. Begin it when the service has started: a heap that still fills up would be collected too often. Returns
 * a function that ends it. It must end before the process does, because V8 refuses code that was compiled and stored under other flags.
 */
export function limitHeapGrowth(): () => void {
  // These runtimes have no such flags.
  if ("Deno" in globalThis || "Bun" in globalThis) return () => {};
  setFlagsFromString(`--heap-growing-percent=${PERCENT}`);
  return () => setFlagsFromString("--heap-growing-percent=0");
}
