import { createSystemClock, defineAdapter, ports } from "@portico/core";

/** The machine's own time. Apps without an adapter of the port `clock` have the same. */
export const systemClock = defineAdapter({
  name: "clock/system",
  port: ports.clock,
  needs: {},
  open: () => createSystemClock(),
});
