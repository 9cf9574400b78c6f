import { relative } from "node:path";
import type { ServedProvider } from "@portico/presets/platform/provider-choice";
import { ownCommand } from "./own-command.ts";
import type { Service } from "./serve.ts";
import { shellWord } from "./terminal/shell-word.ts";

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
export function welcome(service: Service, version: string, signInLink: string | undefined): string {
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
