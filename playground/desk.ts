import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { type Adapter, type App, createApp, ports, Secret } from "@portico/core";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { modelProxy } from "@portico/plugins/model-proxy";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { testing } from "@portico/presets/testing";
import { notebook } from "./notebook.ts";

/** The app that the embedding stories mount. It has three surfaces, with a credential for each. */
export interface Desk {
  readonly app: App;
  readonly tokens: { readonly proxy: string; readonly notebook: string; readonly agent: string };
}

/** The model proxy with the offline model, the notebook, and an agent that repeats its prompt. Everything is in memory. */
export async function openDesk(realtime: Adapter = socketIoRealtime({})): Promise<Desk> {
  const tokens = { notebook: "a-token-for-this-story", agent: "owner-token" };
  const app = await createApp({
    name: "desk",
    extends: testing({}),
    adapters: [systemClock(), randomIds(), realtime],
    plugins: [modelProxy({}), notebook({ token: new Secret(tokens.notebook) }), conversationsRuns({})],
  });
  const safeTokens = createSafeTokens({
    records: app.port(ports.records),
    secrets: app.port(ports.secrets),
    clock: app.port(ports.clock),
    ids: app.port(ports.ids),
  });
  const { token } = await safeTokens.issue({ providerId: "demo" });
  return { app, tokens: { ...tokens, proxy: token.reveal() } };
}
