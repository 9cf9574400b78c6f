import { randomIds } from "@portico/adapters/ids/random";
import { createSocketRegistry, memoryPresence } from "@portico/adapters/presence/memory";
import { expect, it } from "vitest";
import { openAdapter } from "./open-adapter.ts";
import { presenceConformance } from "./presence.ts";

presenceConformance("memory", () => {
  const registry = createSocketRegistry();
  return () => ({ adapter: memoryPresence({ registry }), others: [randomIds()] });
});

it("presence/memory finds no socket of another app without a shared registry", async () => {
  const open = () => openAdapter(memoryPresence({}), [randomIds()]);
  const [one, other] = [await open(), await open()];
  one.port.hold("s", {});
  expect(await other.port.locate("s")).toBeUndefined();
  await one.close();
  await other.close();
});
