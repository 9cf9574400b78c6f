/** The agent service with webhooks, in its own process, with stores in a folder and real HTTP. */
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createGate } from "../../harness/gate.ts";
import { createScriptedEngine } from "../../harness/scripted-agent.ts";
import { startWebhookService, type WebhookService } from "../../harness/webhook-app.ts";

export type ServerJob =
  /** `holds`: the agent begins and does not end until the service closes. */
  { readonly do: "open"; readonly dataDir: string; readonly holds: boolean } | { readonly do: "close" };

export interface ServerResult {
  readonly url?: string;
  readonly secret?: string;
}

const engine = createScriptedEngine();
const gate = createGate();
let service: WebhookService | undefined;

process.on("message", async (job: ServerJob) => {
  if (job.do === "close") {
    gate.open();
    await service?.close();
    return process.send?.({});
  }
  engine.otherwise(async (_turn, { say }) => {
    if (job.holds) await gate.opened;
    await say({ type: "text", delta: "done" });
  });
  service = await startWebhookService({
    dataDir: job.dataDir,
    engine,
    telemetry: openTelemetry({ level: "silent", format: "json" }),
  });
  const secret = await service.save("work", "Look at {{title}} of {{repository}}, which {{sender}} opened");
  process.send?.({ url: service.url, secret } satisfies ServerResult);
});
