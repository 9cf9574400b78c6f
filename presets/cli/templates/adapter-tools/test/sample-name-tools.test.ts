import { openAdapter } from "@portico/test/conformance/open-adapter";
import { toolsConformance } from "@portico/test/conformance/tools";
import { expect, it } from "vitest";
import { sampleNameTools } from "../src/sample-name-tools.ts";

// The rules of the port. `works` is a successful call, `broken` has arguments that the tool's schema refuses.
toolsConformance("sample-name", () => ({
  adapter: sampleNameTools({ longest: 20 }),
  works: { toolId: "count_words", arguments: { text: "Tea without milk" } },
  broken: [undefined, null, "hidden-word", {}, { text: 5 }, { text: "hidden-word".repeat(2) }, { text: "", more: "hidden-word" }],
}));

it("counts words", async () => {
  const { port, close } = await openAdapter(sampleNameTools({}));
  const call = { toolId: "count_words", arguments: { text: " Tea  without\nmilk " }, caller: {} };
  expect((await port.call(call, new AbortController().signal)).content).toEqual([{ type: "text", text: "3" }]);
  await close();
});
