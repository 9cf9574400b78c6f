import { defineAdapter, ports } from "@portico/core";

/** Predictable IDs for tests. Every app counts from 1, UUIDs and IDs together. */
export const sequenceIds = defineAdapter({
  name: "ids/sequence",
  port: ports.ids,
  needs: {},
  open: () => createSequenceIds(),
});

/** The length of a random ID, so that tests see IDs as long as those of users. */
const LENGTH = 17;

function createSequenceIds(): ports.Ids {
  let count = 0;
  return {
    uuid: () => `00000000-0000-4000-8000-${String(++count).padStart(12, "0")}`,
    id: (prefix) => prefix + String(++count).padStart(LENGTH, "0"),
  };
}
