// Nothing here runs: `npm run types` compiles it, and each line that must not compile says so.
import { createApp, defineAdapter, defineContract, defineErrors, definePlugin, definePort, ports, reply } from "@portico/core";
import * as v from "valibot";

const envelope = () => null;
const empty = { method: "GET", path: "/x", summary: "", success: reply.empty() } as const;

// @ts-expect-error auth has no default: "open" is written down
export const noAuth = defineContract({ surface: "agent", envelope }, { x: empty });

// @ts-expect-error a contract stands on a surface
export const noSurface = defineContract({ auth: "open", envelope }, { x: empty });

// @ts-expect-error an area renders its errors
export const noEnvelope = defineContract({ surface: "agent", auth: "open" }, { x: empty });

// @ts-expect-error a path begins with a slash
export const relative = defineContract({ surface: "agent", auth: "open", envelope }, { x: { ...empty, path: "x" } });

// @ts-expect-error HEAD is answered by GET
export const head = defineContract({ surface: "agent", auth: "open", envelope }, { x: { ...empty, method: "HEAD" } });

// @ts-expect-error a body is given parsed, as text or as a stream
export const bytesBody = defineContract({ surface: "agent", auth: "open", envelope }, { x: { ...empty, bodyAs: "bytes" } });

const silent = { method: "GET", path: "/x", summary: "" } as const;
// @ts-expect-error a route declares what it answers
export const noAnswer = defineContract({ surface: "agent", auth: "open", envelope }, { x: silent });

const nope = defineErrors({ nope: { status: 400 } });
// @ts-expect-error the grammar has no fault of this name
export const noFault = defineContract({ surface: "agent", auth: "open", envelope, faults: nope }, { x: empty });

// @ts-expect-error an error has a status
export const noStatus = defineErrors({ guest_unknown: { message: "No such guest" } });

const house = definePort<{ readonly doors: number }>("house");

// @ts-expect-error the adapter does not make what the port is
export const wrongFilling = defineAdapter({ name: "house/tent", port: house, needs: {}, open: () => ({ windows: 1 }) });

export const needy = definePlugin({
  name: "needy",
  config: v.strictObject({ limit: v.number() }),
  needs: { house },
  contract: {},
  setup(given, config) {
    // @ts-expect-error it did not ask for this port
    given.records;
    // @ts-expect-error a number is no text
    const limit: string = config.limit;
    void [limit, given.house.doors];
    return {};
  },
});

// @ts-expect-error a limit is a number
export const wrongOptions = needy({ limit: "1" });

// @ts-expect-error a preset holds plugins with their options, not the factories
export const noOptions = createApp({ name: "x", plugins: [needy] });

export async function wrongPort(): Promise<void> {
  const app = await createApp({ name: "x" });
  // @ts-expect-error records is not a house
  app.port(ports.records).doors;
}
