import { spawn } from "node:child_process";
import { relative } from "node:path";
import type { ServedProvider } from "@portico/presets/platform/provider-choice";
import { VERSION } from "@portico/presets/platform/version";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { ownCommand } from "./own-command.ts";
import type { ReadSettings } from "./read-settings.ts";
import { serve, type Service } from "./serve.ts";
import type { StartablePreset } from "./program.ts";
import { shellWord } from "./terminal.ts";

interface RunServiceOptions {
  /** Write one line of JSON to standard output when everything listens, and nothing else (open points 1). */
  readonly json: boolean;
}

/** Run a preset until SIGTERM or SIGINT, print where it listens, and end the process. Throws the errors of `serve`. */
export async function runService<T extends PlatformSettings>(
  preset: StartablePreset<T>,
  read: () => Promise<Pick<ReadSettings<T>, "settings" | "listing" | "secretFiles" | "configFile">>,
  { json }: RunServiceOptions,
): Promise<never> {
  const exitCode = await serve(preset, read, async (service) => {
    const { urls, madeTokens, directory } = service;
    const listeners = Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, { url }]));
    // Links and tokens are printed only on a terminal, because a log file would keep them.
    const link = json || !process.stdout.isTTY ? undefined : await linkOf(service);
    process.stdout.write(
      json ? `${JSON.stringify({ event: "ready", pid: process.pid, listeners })}\n` : welcome(service, VERSION, link),
    );
    tellServiceManager((reason) => console.error(`systemd was not told that the service is ready: ${reason}`));
    if (!process.stderr.isTTY) return;
    for (const { of, token } of madeTokens) {
      const name = of === "agent" ? "Agent service token" : "Workflow service token";
      process.stderr.write(`${name}, shown only once (stored in ${directory.credentials}): ${token.reveal()}\n`);
    }
  });
  process.exit(exitCode);
}

/** The service runs without a link, too: `portico console` makes another one. */
async function linkOf({ signInLink }: Service): Promise<string | undefined> {
  try {
    return await signInLink?.();
  } catch {
    return undefined;
  }
}

/**
 * Tell systemd that the service is ready, if the unit waits for that (`Type=notify`). Node.js has no datagram sockets of the Unix domain,
 * so systemd's own program `systemd-notify` sends the message: the unit needs `NotifyAccess=all`. `failed` hears why no message was sent.
 */
function tellServiceManager(failed: (reason: string) => void, env: NodeJS.ProcessEnv = process.env): void {
  if (!env["NOTIFY_SOCKET"]) return;
  const program = spawn("systemd-notify", ["--ready"], { env, stdio: "ignore" });
  program.once("error", ({ message }) => failed(message));
  program.once("exit", (code, signal) => {
    if (code !== 0) failed(`systemd-notify ended with ${code ?? signal}`);
  });
}

/** The purpose of each surface, in one line. */
const PURPOSES: Readonly<Record<string, string>> = {
  proxy: "model calls, with a safe token",
  agent: "agents and their owner, with the agent service token",
  workflow: "workflows, with the workflow service token",
  probes: "probes, and metrics with the agent service token",
};
/** The surfaces whose callers use models. */
const ASKING = ["proxy", "agent", "workflow"];

/** The text after a start: the addresses of the listeners, a link to sign in with, the available models, and a call to try. */
function welcome(service: Service, version: string, signInLink: string | undefined): string {
  const { preset, urls, console, certificate, providers, directory, hasData } = service;
  const width = Math.max(...Object.keys(urls).map((name) => name.length));
  const surfaces = Object.entries(urls).map(
    ([name, url]) => `  ${name.padEnd(width)}  ${url}${PURPOSES[name] ? `  (${PURPOSES[name]})` : ""}`,
  );
  const first = providers[0];
  return [
    `Portico ${version} runs the preset ${preset}.`,
    "",
    ...surfaces,
    ...(console === undefined ? [] : ["", ...consoleLines(service, console, signInLink)]),
    ...(certificate === undefined ? [] : ["", `Certificate: ${certificate} (self-signed: configure clients to trust it)`]),
    "",
    ...providersLines(service),
    ...(first && urls["proxy"] ? [...tryLines(first, service, urls["proxy"]), ""] : []),
    `${hasData ? `Data directory: ${directory.path}. ` : ""}Stop with Ctrl-C.`,
    "",
  ].join("\n");
}

function consoleLines({ directory, hasData }: Service, console: string, signInLink: string | undefined): string[] {
  const fresh = `${ownCommand()} console${hasData ? dataFlag(directory.path) : ""}`;
  if (signInLink === undefined) return [`Console: ${console} (${fresh} prints a link that signs in)`];
  return [`Console, signed in: ${signInLink}`, `  (works once, for ten minutes; ${fresh} prints another link)`];
}

/** Empty if only custom surfaces are served: it is not known here whether they call models. */
function providersLines({ urls, providers }: Service): string[] {
  if (!Object.keys(urls).some((name) => ASKING.includes(name))) return [];
  return providers.length === 0 ? ["No provider is enabled: no model is available.", ""] : [...providers.map(providerLine), ""];
}

function providerLine({ id, models, origin, source }: ServedProvider): string {
  if (origin === "demo") {
    return `Provider "demo": no provider is configured, so the offline model "demo" is available for trying things. It needs no key and no network.`;
  }
  const served = models === "discover" ? "all models that the upstream lists" : models.join(", ");
  return `Provider "${id}": ${served}${source ? ` (found: ${source})` : ""}.`;
}

function tryLines({ id, models }: ServedProvider, { directory, certificate }: Service, url: string): string[] {
  const issue = `  TOKEN=$(${ownCommand()} token issue --provider ${id}${dataFlag(directory.path)})`;
  const curl = certificate === undefined ? "curl" : `curl --cacert ${shellWord(certificate)}`;
  const bearer = '-H "authorization: Bearer $TOKEN"';
  const [model] = models;
  if (models === "discover" || model === undefined)
    return ["Issue a safe token and see the models:", issue, `  ${curl} ${url}/models ${bearer}`];
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  return [
    "Issue a safe token and try it:",
    issue,
    `  ${curl} ${url}/chat/completions ${bearer} -H "content-type: application/json" \\`,
    `    -d ${shellWord(body)}`,
  ];
}

/** The flag with which another command finds the same data directory. Empty for the default directory. */
function dataFlag(path: string): string {
  const shown = relative(process.cwd(), path);
  return shown === ".portico" ? "" : ` --data-dir ${shellWord(path)}`;
}
