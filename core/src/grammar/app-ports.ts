import { createSystemClock } from "../kit/clock.ts";
import { createRandomIds } from "../kit/random-ids.ts";
import { describeCause } from "./guard-call.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Telemetry } from "../ports/telemetry.ts";
import { type Readiness, READINESS_MS, type ReadinessCheck, type ReadinessFailure } from "../ports/readiness.ts";

/**
 * Fills `clock`, `ids` and `telemetry` in apps whose presets have no adapter for them, so that a small embedding needs none.
 * Telemetry writes errors to `console.error` and drops everything else.
 */
export const builtIn: { readonly clock: Clock; readonly ids: Ids; readonly telemetry: Telemetry } = {
  clock: createSystemClock(),
  ids: createRandomIds(),
  telemetry: {
    log: {
      debug() {},
      info() {},
      warn() {},
      // Without telemetry, errors go to the place of Node's own warnings. Otherwise they would be lost.
      error: (message, fields, cause) => console.error(message, fields ?? {}, cause === undefined ? "" : describeCause(cause)),
    },
    begin: () => ({ note() {}, run: (work) => work(), end() {} }),
    work: () => ({ run: (work) => work(), end() {} }),
    traceparent: () => undefined,
    modelCall() {},
    gauge: () => () => {},
  },
};

const NAME_LENGTH = 64;

/** Fills the port `readiness` of one app. */
export class ReadinessChecks implements Readiness {
  readonly #checks = new Map<string, ReadinessCheck>();

  add(check: ReadinessCheck): () => void {
    const { name } = check;
    if (name.length < 1 || name.length > NAME_LENGTH) throw new Error("The name of a readiness check has 1-64 characters");
    if (this.#checks.has(name)) throw new Error(`There are two readiness checks with the name "${name}"`);
    this.#checks.set(name, check);
    return () => {
      // A second call must not remove a later check of the same name.
      if (this.#checks.get(name) === check) this.#checks.delete(name);
    };
  }

  async failures(): Promise<readonly ReadinessFailure[]> {
    const asked = await Promise.all([...this.#checks.values()].map(async (check) => ({ check, reason: await ask(check) })));
    return asked.flatMap(({ check: { name }, reason }) => (reason === undefined ? [] : [{ name, reason }]));
  }
}

/** In real time: probes are about this machine, whatever the clock of the app says. */
async function ask(check: ReadinessCheck): Promise<string | undefined> {
  const late = Promise.withResolvers<string>();
  const timer = setTimeout(() => late.resolve("no answer in time"), READINESS_MS);
  try {
    return await Promise.race([check.reason(), late.promise]);
  } catch {
    // Its message may quote an address.
    return "the check failed";
  } finally {
    clearTimeout(timer);
  }
}

/** A path of one surface, as clients spell it. */
interface ServedPath {
  readonly surface: string;
  readonly path: string;
}

/** Fills the ports `node-paths` and `websocket-paths`: served paths by surface. The surfaces look paths up at every request. */
export class PathTable<P extends ServedPath> {
  readonly #surfaces = new Map<string, Map<string, P>>();

  serve(served: P): () => void {
    const paths = this.#pathsOf(served.surface);
    if (paths.has(served.path)) throw new Error(`Path ${served.path} of surface "${served.surface}" is served twice`);
    paths.set(served.path, served);
    return () => {
      // A second call must not remove the path of a later adapter.
      if (paths.get(served.path) === served) paths.delete(served.path);
    };
  }

  /** The current paths of one surface. The map is live. */
  of(surface: string): ReadonlyMap<string, P> {
    return this.#pathsOf(surface);
  }

  /** Every surface that has or had a served path. */
  get surfaces(): readonly string[] {
    return [...this.#surfaces.keys()];
  }

  #pathsOf(surface: string): Map<string, P> {
    const known = this.#surfaces.get(surface) ?? new Map<string, P>();
    this.#surfaces.set(surface, known);
    return known;
  }
}
