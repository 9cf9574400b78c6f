import { systemClock } from "@portico/adapters/clock/system";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, describeCause, ports } from "@portico/core";
import { mcpToolSources } from "@portico/presets/platform/service-adapters";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { shellWord } from "../terminal.ts";
import { type Finding, fine, folderFindings, wrong } from "./finding.ts";

/** Longest wait for a server's list of tools. */
const ANSWER_MS = 10_000;

/** The tools of a server. */
export interface ServerTools {
  /** Their IDs. Undefined: the server does not answer. */
  readonly ids: readonly string[] | undefined;
  readonly problems: readonly ports.ToolProblem[];
  /** It uses an account of the running service, so its tools are not asked for here. */
  readonly isUnknown?: boolean | undefined;
}

type Server = PlatformSettings["mcpServers"][string];

/** Connects to every MCP server, starts its program if it has one, and asks for its tools. */
export async function checkMcpServers({
  mcpServers,
  outbound,
}: PlatformSettings): Promise<{ readonly findings: readonly Finding[]; readonly tools: ReadonlyMap<string, ServerTools> }> {
  const checked = await Promise.all(Object.entries(mcpServers).map(([id, server]) => checkServer(id, server, outbound)));
  return {
    findings: checked.flatMap(({ findings }) => findings),
    tools: new Map(checked.map(({ id, tools }) => [id, tools])),
  };
}

async function checkServer(id: string, server: Server, outbound: PlatformSettings["outbound"]) {
  const about = `MCP server ${id}`;
  const folder = server.cwd === undefined ? [] : folderFindings(about, server.cwd, `or correct mcpServers.${id}.cwd`);
  if (folder.length > 0) return { id, findings: folder, tools: { ids: undefined, problems: [] } };
  if (server.auth) {
    const finding = fine(about, `uses an account: portico mcp status shows whether it is connected`);
    return { id, findings: [finding], tools: { ids: undefined, problems: [], isUnknown: true } };
  }
  const app = await createApp({
    name: "doctor",
    adapters: [systemClock(), memoryTelemetry(undefined), ...mcpToolSources({ mcpServers: { [id]: server }, outbound })],
  });
  const [source] = app.port(ports.tools);
  const problems = () => source!.problems?.() ?? [];
  try {
    const ids = (await source!.list(AbortSignal.timeout(ANSWER_MS))).map((tool) => tool.id);
    return { id, findings: [fine(about, `answers, and lists ${ids.length} tools`)], tools: { ids, problems: problems() } };
  } catch (error) {
    return { id, findings: [unanswered(about, id, server, error)], tools: { ids: undefined, problems: problems() } };
  } finally {
    await app.close();
  }
}

function unanswered(about: string, id: string, { command, url }: Server, error: unknown): Finding {
  const code = codeOf(error);
  if (code === "TimeoutError") return wrong(about, `did not answer within ${ANSWER_MS / 1000} s`, checkIt(id, { command, url }));
  if (command !== undefined && code === "ENOENT" && /\s/.test(command))
    return wrong(about, "its program does not exist", `put arguments into mcpServers.${id}.args: command is only the program`);
  if (command !== undefined && code === "ENOENT")
    return wrong(
      about,
      "its program does not exist",
      `command -v ${shellWord(command)}; install the program, or correct mcpServers.${id}.command`,
    );
  if (code === "401" || code === "403")
    return wrong(about, `refuses the credential (${code})`, `correct mcpServers.${id}.headers`);
  if (command !== undefined && code === "CONNECTION_CLOSED")
    return wrong(about, "its program ended before it answered", checkIt(id, { command, url }));
  return wrong(about, `cannot be used (${code})`, checkIt(id, { command, url }));
}

/** A command with which a person sees what the server answers. Arguments and addresses may have secrets. */
function checkIt(id: string, { command, url }: Pick<Server, "command" | "url">): string {
  if (command !== undefined)
    return `start its program by hand (${shellWord(command)}) to see its error, and correct mcpServers.${id}`;
  const origin = url === undefined ? "" : new URL(url).origin;
  return `curl -i ${origin}; start the server, or correct mcpServers.${id}.url`;
}

/** A code or a status of the innermost cause that has one, without messages: they quote addresses and texts of the server. */
function codeOf(error: unknown): string {
  for (let each: unknown = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++) {
    if (each.name === "TimeoutError") return each.name;
    const { code, status } = each as { readonly code?: unknown; readonly status?: unknown };
    if (typeof status === "number") return String(status);
    if ((typeof code === "string" && /^\w{1,64}$/.test(code)) || typeof code === "number") return String(code);
  }
  let inner = describeCause(error);
  while (inner.cause) inner = inner.cause;
  return String(inner.code ?? inner.name);
}
