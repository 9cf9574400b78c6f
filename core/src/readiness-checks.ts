import { READINESS_MS, type Readiness, type ReadinessCheck, type ReadinessFailure } from "./ports/readiness.ts";

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
