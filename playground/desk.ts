import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { demo } from "@portico/adapters/models/demo";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { type App, createApp, ports, Secret } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { notebook } from "./third-party-plugin.ts";

/** What the embedding stories mount: an app with two surfaces, and a credential for each. */
export interface Desk extends AsyncDisposable {
  readonly app: App;
  /** For surface `proxy`. */
  readonly safeToken: string;
  /** For surface `notebook`. */
  readonly notebookToken: string;
}

/** The model proxy with the offline model, and the notebook; everything in memory. */
export async function openDesk(): Promise<Desk> {
  const notebookToken = "a-token-for-this-story";
  const app = await createApp({
    name: "desk",
    adapters: [systemClock(), randomIds(), memoryRecords(), memorySecrets(), openTelemetry({ level: "error" }), demo({})],
    plugins: [modelProxy({}), notebook({ token: new Secret(notebookToken) })],
  });
  const tokens = createSafeTokens({
    records: app.port(ports.records),
    secrets: app.port(ports.secrets),
    clock: app.port(ports.clock),
    ids: app.port(ports.ids),
  });
  const { token } = await tokens.issue({ providerId: "demo" });
  return { app, safeToken: token.reveal(), notebookToken, [Symbol.asyncDispose]: app.close };
}
