import type { Adapter } from "./adapter.ts";
import type { Plugin } from "./plugin.ts";
import type { Needs, Port } from "./port.ts";

/** An adapter that fills a port, as a preset writes it: a call, and the module that exports the function. */
export interface UsualAdapter {
  readonly call: string;
  readonly from: string;
}

/**
 * For each single port, the adapter that most presets use. Only text, because the core knows no technology. `records`, `log` and `engine` go
 * together: these three share one SQLite file.
 */
export const USUAL_ADAPTERS: Readonly<Record<string, UsualAdapter>> = {
  agents: { call: "...agentFolder({ dir })", from: "@portico/adapters/stores/agent-folder" },
  audit: { call: "recordAudit({})", from: "@portico/adapters/audit/records" },
  backgroundTurns: { call: "conversationsRuns({}) in plugins", from: "@portico/plugins/conversations-runs" },
  blobs: { call: "fileBlobs({ dir })", from: "@portico/adapters/blobs/files" },
  bus: { call: "memoryBus({})", from: "@portico/adapters/bus/memory" },
  "conversations-runs/runtime": { call: "conversationsRuns({}) in plugins", from: "@portico/plugins/conversations-runs" },
  engine: { call: "embeddedEngine({})", from: "@portico/adapters/engine/embedded" },
  identity: { call: "tokenIdentity({ tokens })", from: "@portico/adapters/identity/tokens" },
  log: { call: "sqliteLog({})", from: "@portico/adapters/log/sqlite" },
  notifications: { call: "webhookNotifications({ url, secret })", from: "@portico/adapters/notifications/webhook" },
  presence: { call: "memoryPresence({})", from: "@portico/adapters/presence/memory" },
  realtime: { call: "socketIoRealtime({})", from: "@portico/adapters/realtime/socket-io" },
  records: { call: "sqliteRecords({ path })", from: "@portico/adapters/records/sqlite" },
  redis: { call: "ioredisServer({ url })", from: "@portico/cluster/redis/ioredis" },
  schedules: { call: "recordSchedules({})", from: "@portico/adapters/schedules/records" },
  sealing: { call: "aesGcmSealing({})", from: "@portico/adapters/sealing/aes-gcm" },
  secrets: { call: "fileSecrets({ path })", from: "@portico/adapters/secrets/files" },
  signing: { call: "hmacSigning({ key })", from: "@portico/adapters/signing/hmac" },
  usage: { call: "recordUsage({})", from: "@portico/adapters/usage/records" },
  "workflow-service/access": { call: "workflowService({ token }) in plugins", from: "@portico/plugins/workflow-service" },
  "workflow-service/runtime": { call: "workflowService({ token }) in plugins", from: "@portico/plugins/workflow-service" },
};

/** Throws one error that names every port that a part needs and no adapter fills, with an adapter to write down for each. */
export function refuseMissingPorts(
  preset: string,
  adapters: readonly Adapter[],
  plugins: readonly Plugin[],
  isFilled: (port: Port<unknown>) => boolean,
): void {
  const missing = new Map<string, string[]>();
  const look = (who: string, needs: Needs) => {
    for (const port of Object.values(needs)) {
      if (port.many || port.isOptional || isFilled(port)) continue;
      const by = missing.get(port.id) ?? [];
      missing.set(port.id, by.includes(who) ? by : [...by, who]);
    }
  };
  for (const { name, spec } of adapters) look(`adapter "${name}"`, spec.needs as Needs);
  for (const { name, spec } of plugins) look(`plugin "${name}"`, spec.needs as Needs);
  if (missing.size === 0) return;
  const lines = [...missing].map(([port, by]) => `  port "${port}" (for ${by.join(", ")})${suggestion(port)}`);
  const which = missing.size === 1 ? "a port that parts of it need" : `${missing.size} ports that parts of it need`;
  throw new Error(`Preset "${preset}" has no adapter for ${which}:\n${lines.join("\n")}`);
}

function suggestion(port: string): string {
  const usual = Object.hasOwn(USUAL_ADAPTERS, port) ? USUAL_ADAPTERS[port] : undefined;
  return usual ? `: add ${usual.call} from ${usual.from}` : "";
}
