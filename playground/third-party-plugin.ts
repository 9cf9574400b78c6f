// A third-party plugin as a separate app. The client that calls it is derived from the plugin's contract.
import { systemClock } from "@portico/adapters/clock/system";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { type App, createApp, loadConfig, Secret } from "@portico/core";
import { createClient } from "@portico/core/client";
import { notebook, notebookConfig, notebookContract } from "./notebook.ts";

/** The notebook as a separate app, configured by these environment variables. */
export async function start(env: Readonly<Record<string, string | undefined>> = process.env): Promise<App> {
  const { value } = loadConfig(notebookConfig, { env });
  return createApp({ name: "notebook", adapters: [systemClock(), memoryRecords(), memorySecrets()], plugins: [notebook(value)] });
}

if (import.meta.main) {
  const token = new Secret("a-token-for-this-story");
  await using app = await start({ NOTEBOOK_TOKEN: token.reveal() });
  const client = createClient(notebookContract, {
    baseURL: "http://notebook.local",
    headers: { authorization: `Bearer ${token.reveal()}` },
    fetch: app.fetch,
  });
  const left = new AbortController();
  const events = await client.watch({ signal: left.signal });
  await client.write({ body: { title: "first", text: "Ports are small." } });
  for await (const { event, data } of events) {
    console.log(`${event}: ${data.title}`);
    break;
  }
  left.abort();
  console.log(`listed: ${(await client.list()).notes.map((each) => each.title).join(", ")}`);
  const again = client.write({ body: { title: "first", text: "Again." } });
  console.log(await again.catch((error: Error) => error.message));
}
