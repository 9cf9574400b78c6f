import { relative } from "node:path";
import type { ServedProvider } from "../platform/provider-choice.ts";
import type { Service } from "./serve.ts";
import { shellWord } from "./terminal/shell-word.ts";

/** What each surface is for, in a line. */
const PURPOSES: Readonly<Record<string, string>> = {
  proxy: "model calls, with a safe token",
  agent: "agents and their owner, with the agent service token",
  workflow: "workflows, with the workflow service token",
};

/** What a person wants to know first: what listens where, which models answer, and a call to try. */
export function welcome(service: Service, version: string): string {
  const { preset, urls, console, providers, directory } = service;
  const width = Math.max(...Object.keys(urls).map((name) => name.length));
  const surfaces = Object.entries(urls).map(
    ([name, url]) => `  ${name.padEnd(width)}  ${url}${PURPOSES[name] ? `  (${PURPOSES[name]})` : ""}`,
  );
  const first = providers[0];
  return [
    `Portico ${version} runs the preset ${preset}.`,
    "",
    ...surfaces,
    ...(console === undefined ? [] : ["", `Console: ${console} (sign in with the agent service token)`]),
    "",
    ...providersLines(service),
    ...(first && urls["proxy"] ? [...tryLines(first, urls["proxy"], dataFlag(directory.path)), ""] : []),
    `Data directory: ${directory.path}. Stop with Ctrl-C.`,
    "",
  ].join("\n");
}

/** Nothing where only surfaces of somebody's own are served: whether they ask models is not known here. */
function providersLines({ urls, providers }: Service): string[] {
  if (!Object.keys(urls).some((name) => PURPOSES[name])) return [];
  return providers.length === 0 ? ["No provider is enabled: no model answers here.", ""] : [...providers.map(providerLine), ""];
}

function providerLine({ id, models, origin, source }: ServedProvider): string {
  if (origin === "demo") {
    return `Provider "demo": no provider is configured, so the offline demo model "demo" is there to try things. It needs no key and no network.`;
  }
  const served = models === "discover" ? "all models of its own list" : models.join(", ");
  return `Provider "${id}": ${served}${source ? ` (found: ${source})` : ""}.`;
}

function tryLines({ id, models }: ServedProvider, url: string, flag: string): string[] {
  const issue = `  TOKEN=$(npx portico token issue --provider ${id}${flag})`;
  const bearer = '-H "authorization: Bearer $TOKEN"';
  const [model] = models;
  if (models === "discover" || model === undefined)
    return ["Issue a safe token and see the models:", issue, `  curl ${url}/models ${bearer}`];
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  return [
    "Issue a safe token and try it:",
    issue,
    `  curl ${url}/chat/completions ${bearer} -H "content-type: application/json" \\`,
    `    -d ${shellWord(body)}`,
  ];
}

/** The flag that leads another command to the same data directory; none where it looks there anyway. */
function dataFlag(path: string): string {
  const shown = relative(process.cwd(), path);
  return shown === ".portico" ? "" : ` --data-dir ${shellWord(path)}`;
}
