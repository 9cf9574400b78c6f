import { createRandomIds, defineAdapter, ports } from "@portico/core";

/** Unpredictable IDs. Apps without an adapter of the port `ids` have the same. */
export const randomIds = defineAdapter({
  name: "ids/random",
  port: ports.ids,
  needs: {},
  open: () => createRandomIds(),
});
