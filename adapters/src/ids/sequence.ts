import { defineAdapter, ports } from "@portico/core";

/** Names that a test can foretell: every app counts from 1, UUIDs and ids together. */
export const sequenceIds = defineAdapter({
  name: "ids/sequence",
  port: ports.ids,
  needs: {},
  open: () => createSequenceIds(),
});

/** As many characters as a random id has, so that what a test sees is as long as what users will see. */
const LENGTH = 17;

function createSequenceIds(): ports.Ids {
  let count = 0;
  return {
    uuid: () => `00000000-0000-4000-8000-${String(++count).padStart(12, "0")}`,
    id: (prefix) => prefix + String(++count).padStart(LENGTH, "0"),
  };
}
