import type { Plugin } from "./plugin.ts";
import type { Area } from "./ports/areas.ts";

/** What a plugin shows to the outside. Nothing has to be opened for it: contracts are data. */
export function areaOf({ name, spec }: Plugin): Area {
  return { name, summary: spec.summary, contract: spec.contract, channels: spec.channels ?? {} };
}
