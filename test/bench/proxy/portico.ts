import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { ports } from "@portico/core";
import { startChild } from "./child.ts";
import { MODEL } from "./workload.ts";

/** The model proxy in its own process, with one provider and one safe token per protocol. */
export interface Portico {
  readonly origin: string;
  readonly pid: number;
  readonly tokens: Readonly<Record<ports.ModelProtocol, string>>;
  stop(): Promise<void>;
}

const CHECKOUT = fileURLToPath(new URL("../../..", import.meta.url));

/**
 * Starts the proxy with `portico start proxy`, as users do, with an empty data directory. Its log goes to the file descriptor. `flags` are further
 * arguments of the start.
 */
export async function startPortico(
  dataDir: string,
  upstream: string,
  log: number,
  checkout = CHECKOUT,
  flags: readonly string[] = [],
): Promise<Portico> {
  const program = join(checkout, "presets/cli/portico.mjs");
  const provider = (protocol: ports.ModelProtocol) => ({
    id: protocol,
    type: "bench",
    protocol,
    baseUrl: `${upstream}/v1`,
    credential: "sk-bench-0123456789abcdef",
    models: [MODEL],
  });
  const config = join(dataDir, "portico.config.json");
  await writeFile(config, JSON.stringify({ dataDir, providers: [provider("messages"), provider("chat-completions")] }));
  const child = await startChild(process.execPath, [program, "start", "proxy", "--config", config, "--json", ...flags], log);
  const ready = child.ready as { listeners: { proxy: { url: string } } };
  return {
    origin: new URL(ready.listeners.proxy.url).origin,
    pid: child.pid,
    tokens: {
      messages: await issueToken(program, config, "messages"),
      "chat-completions": await issueToken(program, config, "chat-completions"),
    },
    stop: child.stop,
  };
}

async function issueToken(program: string, config: string, provider: ports.ModelProtocol): Promise<string> {
  const args = [program, "token", "issue", "--config", config, "--provider", provider];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return stdout.trim();
}
