import { defineAdapter, ports } from "@portico/core";

/** IDs that count up, for tests. */
export const countedIds = defineAdapter({
  name: "ids/counted",
  port: ports.ids,
  needs: {},
  open(): ports.Ids {
    let count = 0;
    const next = (length: number) => (++count).toString(16).padStart(length, "0");
    return { id: (prefix) => prefix + next(17), uuid: () => `00000000-0000-4000-8000-${next(12)}` };
  },
});
