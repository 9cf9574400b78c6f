import { setTimeout as sleep } from "node:timers/promises";
import { endAll, type EngineProcess, placeOf, startEngines } from "./processes.ts";
import type { Servers } from "./servers.ts";

const HELD = 20;

/**
 * Milliseconds from the loss of one of three processes until another process executes each of its 20 works, one number per repetition.
 * SIGKILL ends the process, SIGSTOP freezes it.
 */
export async function measureTakeover(
  servers: Servers,
  { name, leaseMs, signal, times }: { name: string; leaseMs: number; signal: "SIGKILL" | "SIGSTOP"; times: number },
): Promise<readonly number[]> {
  const place = placeOf(servers, name, leaseMs);
  const living = await startEngines(place, 3);
  const took: number[] = [];
  try {
    for (let time = 0; time < times; time++) {
      const victim = living.shift()!;
      const { ids = [] } = await victim.run({ do: "hold", runs: HELD });
      while (Object.keys((await victim.run({ do: "held" })).began ?? {}).length < HELD) await sleep(20);
      // The loss happens at a random moment between two heartbeats.
      await sleep(300 + Math.random() * 1000);
      const at = Number(process.hrtime.bigint()) / 1e6;
      process.kill(victim.pid, signal);
      took.push((await whenAllBegan(living, ids)) - at);
      if (signal === "SIGSTOP") process.kill(victim.pid, "SIGKILL");
      living.push(...(await startEngines(place, 1)));
    }
    return took;
  } finally {
    await endAll(living);
  }
}

async function whenAllBegan(processes: readonly EngineProcess[], ids: readonly string[]): Promise<number> {
  for (;;) {
    const all = await Promise.all(processes.map((each) => each.run({ do: "held" })));
    const began: Record<string, number> = Object.assign({}, ...all.map((each) => each.began));
    if (ids.every((id) => began[id] !== undefined)) return Math.max(...ids.map((id) => began[id]!));
    await sleep(50);
  }
}
