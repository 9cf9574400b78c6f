import { createApp, definePlugin, ports } from "@portico/core";
import * as v from "valibot";
import { expect, it } from "vitest";
import { readPage } from "./pages.ts";

it("docs/another-store.md shows the error of a start without adapters, as it is", async () => {
  const { records, log, engine } = ports;
  const orders = definePlugin({
    name: "orders",
    config: v.strictObject({}),
    needs: { records, log, engine },
    contract: {},
    setup: () => ({}),
  });
  const failure = await createApp({ name: "shop", plugins: [orders({})] }).catch((error: Error) => error);
  const { blocks } = await readPage("docs/another-store.md");
  const shown = blocks.find(({ mark }) => mark?.of === "test/spec/docs/another-store.test.ts");
  expect((failure as Error).message).toBe(shown!.text.trim());
});
