// A preset of one's own: the proxy with another store, another plugin beside it, and settings for both.
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { type App, createApp, definePreset, loadConfig, ports, probes } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { chooseProviders, proxy, proxySchema } from "portico/proxy";
import * as v from "valibot";
import { listen } from "./listen.ts";
import { notebook, notebookConfig } from "./third-party-plugin.ts";

/** All keys of a platform, and the notebook's own. */
export const teamSchema = v.strictObject({ ...proxySchema.entries, notebook: notebookConfig });

export interface TeamOptions {
  readonly settings: v.InferOutput<typeof teamSchema>;
  readonly providers: Awaited<ReturnType<typeof chooseProviders>>;
}

/** Surfaces `proxy` and `notebook`. What stands here wins over what it extends: nothing needs a data directory. */
export const team = definePreset((options: TeamOptions) => ({
  name: "team",
  extends: proxy(options),
  adapters: [memoryRecords(), memorySecrets()],
  plugins: [modelProxy({}), notebook(options.settings.notebook), probes({ surface: "notebook" })],
}));

export interface Team extends AsyncDisposable {
  readonly app: App;
  /** Surface name to URL. */
  readonly urls: Readonly<Record<string, string>>;
  /** A safe token of the first provider. */
  issueToken(): Promise<string>;
}

/** Reads the settings, opens the app and one listener per surface. Disposing closes the listeners, then the app. */
export async function start(env: Readonly<Record<string, string | undefined>> = process.env): Promise<Team> {
  const { value: settings } = loadConfig(teamSchema, { env });
  const providers = await chooseProviders(settings, { env });
  // Until it is moved out of here: a start that fails half-way closes what it had opened.
  await using opened = new AsyncDisposableStack();
  const app = opened.use(await createApp(team({ settings, providers })));
  const urls: Record<string, string> = {};
  for (const name of app.surfaces) urls[name] = opened.use(await listen(app.surface(name).node)).url;
  const tokens = createSafeTokens({
    records: app.port(ports.records),
    secrets: app.port(ports.secrets),
    clock: app.port(ports.clock),
    ids: app.port(ports.ids),
  });
  const running = opened.move();
  return {
    app,
    urls,
    issueToken: async () => (await tokens.issue({ providerId: providers[0]!.id })).token.reveal(),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

if (import.meta.main) {
  const env = { NOTEBOOK_TOKEN: "a-token-for-this-story", PORTICO_AUTO_PROVIDERS: "false", PORTICO_LOG_LEVEL: "error" };
  await using service = await start(env);
  const models = await fetch(`${service.urls["proxy"]}/v1/models`, { headers: { "x-api-key": await service.issueToken() } });
  console.log(`proxy: ${models.status}`);
  console.log(`notebook: ${await (await fetch(`${service.urls["notebook"]}/readyz`)).text()}`);
}
