import { memoryRecords } from "@portico/adapters/records/memory";
import { toolsConformance } from "@portico/test/conformance/tools";
import { memoryTools } from "./own-tools.ts";

toolsConformance(
  "playground/own-tools.ts",
  () => ({
    adapter: memoryTools({ longest: 20 }),
    works: { toolId: "remember", arguments: { topic: "tea", text: "No milk." } },
    broken: [
      undefined,
      null,
      "hidden-word",
      {},
      { topic: "tea" },
      { topic: "Hidden-Word", text: "" },
      { topic: "tea", text: "hidden-word".repeat(3) },
      { topic: "tea", text: "", more: "hidden-word" },
    ],
  }),
  { others: [memoryRecords()] },
);
