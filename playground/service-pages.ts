// The service pages in your own application: metrics, API documents, probes, and the web console.
import { createServer } from "node:http";
import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { memoryAgents } from "@portico/adapters/agents/memory";
import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { demo } from "@portico/adapters/models/demo";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { memoryStore } from "@portico/adapters/stores/memory";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { createApp, instanceAccess, openAccess, Secret } from "@portico/core";
import { attach, toNodeHandler } from "@portico/core/node";
import { apiDocs } from "@portico/operator/api-docs";
import { webConsole } from "@portico/console";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { listeners } from "@portico/operator/listeners";
import { metrics } from "@portico/operator/metrics";
import { probes } from "@portico/operator/probes";
import { listening } from "./embedding-story.ts";

/** Surface `agent`, and surface `metrics` for a scraper on the same network. */
export async function start() {
  const measured = createPrometheusMetrics();
  const urls: Record<string, string> = {};
  const app = await createApp({
    name: "agents-with-pages",
    adapters: [
      ...memoryStore(),
      memoryAgents({ agents: new Map([["helper", { name: "Helper" }]]) }),
      loopAgentEngine({}),
      tokenIdentity({ tokens: [{ token: new Secret("the-token-of-ada"), userId: "ada", role: "owner" }] }),
      demo({}),
      socketIoRealtime({}),
      openTelemetry({ level: "error", prometheus: measured }),
    ],
    plugins: [
      conversationsRuns({}),
      apiDocs({ surface: "agent", access: instanceAccess, title: "Our agents", version: "1.0.0" }),
      listeners({ urls: () => urls }),
      webConsole({ urls: () => urls }),
      metrics({ surface: "metrics", access: openAccess, measured }),
      probes({ surface: "agent" }),
    ],
  });
  const server = createServer(toNodeHandler(app.surface("agent"))).listen(0, "127.0.0.1");
  const host = await listening(app, server, attach(server, app.surface("agent")));
  urls["agent"] = host.url;
  return { ...host, app };
}

if (import.meta.main) {
  await using story = await start();
  const headers = { "x-agent-service-token": "the-token-of-ada" };
  console.log(`console: ${(await story.call("/")).headers.get("content-type")}`);
  const { info } = (await (await story.call("/openapi.json", { headers })).json()) as { info: { title: string } };
  console.log(`documents: ${info.title}`);
  console.log(`ready: ${await (await story.call("/readyz")).text()}`);
  const measured = await story.app.surface("metrics").fetch(new Request("http://metrics.local/metrics"));
  const counted = /^http_server_request_duration_seconds_count\{.*route="(.*?)".*\} (\d+)$/m.exec(await measured.text());
  console.log(`measured: ${counted?.[2]} of ${counted?.[1]}`);
}
