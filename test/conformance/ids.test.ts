import { randomIds } from "@portico/adapters/ids/random";
import { sequenceIds } from "@portico/adapters/ids/sequence";
import { expect, it } from "vitest";
import { idsConformance } from "./ids.ts";
import { openAdapter } from "./open-adapter.ts";

idsConformance("random", () => randomIds());
idsConformance("sequence", () => sequenceIds(), { foretold: true });

it("ids/sequence counts UUIDs and ids together, from 1", async () => {
  const { port: ids } = await openAdapter(sequenceIds());
  expect([ids.uuid(), ids.id("req_"), ids.uuid()]).toEqual([
    "00000000-0000-4000-8000-000000000001",
    "req_00000000000000002",
    "00000000-0000-4000-8000-000000000003",
  ]);
});
