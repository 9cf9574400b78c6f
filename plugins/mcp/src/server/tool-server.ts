import type { ports } from "@portico/core";
import { createMcpHandler, ProtocolError, ProtocolErrorCode, Server } from "@modelcontextprotocol/server";
import type { RunningCalls } from "./running-calls.ts";

/** A tool as it is listed. */
export interface OfferedTool {
  /** 1-64 of letters, digits, `_`, `-`. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** One call of a tool. */
export interface ToolCall<Who> {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly who: Who;
  /** Aborts when the client cancels the call. */
  readonly cancelled: AbortSignal;
  /** Aborts when no answer can wait any longer: the client has cancelled or left, or the service stops. */
  readonly over: AbortSignal;
  /** Tells the client how far the call is. Does nothing if the client did not ask for it. `progress` grows with each call. */
  progress(told: { readonly progress: number; readonly total?: number; readonly message: string }): Promise<void>;
}

/** What a model reads. An error of a tool is an answer, too. */
export interface ToolAnswer {
  readonly text: string;
  readonly isError?: boolean;
}

/** The tools of a server. */
export interface Tools<Who> {
  /** In the order of their names. */
  list(who: Who): readonly OfferedTool[] | Promise<readonly OfferedTool[]>;
  /** Undefined if there is no such tool for this caller. */
  call(call: ToolCall<Who>): Promise<ToolAnswer | undefined>;
}

/** One request of a client. */
export interface McpRequest<Who> {
  readonly request: Request;
  /** Undefined if it is no valid UTF-8. */
  readonly body: string | undefined;
  readonly who: Who;
  /** Separates the calls of one caller from those of others. */
  readonly callerId: string;
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal;
}

export interface ToolServerOptions<Who> {
  readonly name: string;
  readonly version: string;
  readonly tools: Tools<Who>;
  readonly calls: RunningCalls;
  readonly ids: ports.Ids;
  readonly log: ports.Log;
}

const SESSION_HEADER = "mcp-session-id";
const TOOLS_PER_PAGE = 100;
/** A longer text of an answer is cut. */
const ANSWER_BYTES = 256 * 1024;

/**
 * An MCP server whose requests may each reach another process: nothing is kept between them. It speaks the revision 2026-07-28, in which a client
 * cancels a call by closing its stream, and those of 2025, in which it sends a notification. For that, the answer of `initialize` names a session,
 * which is only a part of the names of calls.
 */
export function createToolServer<Who>({ name, version, tools, calls, ids, log }: ToolServerOptions<Who>) {
  const handler = createMcpHandler(
    ({ authInfo, era }) => serverOf(authInfo!.extra!["incoming"] as McpRequest<Who>, era === "modern"),
    // A stream has comments, so that no proxy aborts a call that takes long.
    { responseMode: "sse" },
  );

  function serverOf(incoming: McpRequest<Who>, isModern: boolean): Server {
    const { who, callerId, request, stopping } = incoming;
    const server = new Server({ name, version }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", async ({ params }) => {
      const after = params?.cursor;
      const all = (await logged(() => tools.list(who))).filter((tool) => after === undefined || tool.name > after);
      const page = all.slice(0, TOOLS_PER_PAGE);
      return {
        tools: page.map((tool) => ({ ...tool, inputSchema: { ...tool.inputSchema, type: "object" as const } })),
        ...(all.length > page.length && { nextCursor: page.at(-1)!.name }),
      };
    });
    server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
      const { id, signal: left } = mcpReq;
      const progressToken = params._meta?.progressToken;
      const execute = async (byName: AbortSignal): Promise<ToolAnswer | undefined> => {
        // In the revisions of 2025, a client that has lost its connection has not cancelled.
        const cancelled = isModern ? AbortSignal.any([byName, left]) : byName;
        return tools.call({
          name: params.name,
          arguments: params.arguments ?? {},
          who,
          cancelled,
          over: AbortSignal.any([byName, left, stopping]),
          async progress(told) {
            if (progressToken === undefined || left.aborted) return;
            // The client may have left meanwhile.
            await mcpReq.notify({ method: "notifications/progress", params: { progressToken, ...told } }).catch(() => {});
          },
        });
      };
      const answer = await logged(async () => {
        const session = request.headers.get(SESSION_HEADER);
        const running = calls.run(session === null ? undefined : nameOf(callerId, session, id), execute);
        return running ? await running : { text: "The service executes too many calls at once: try again later", isError: true };
      });
      if (!answer) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${JSON.stringify(params.name)}`);
      const { text, isError } = answer;
      return { content: [{ type: "text" as const, text: boundedText(text) }], ...(isError && { isError }) };
    });
    return server;
  }

  /** Clients are not told about errors that the tools do not declare. */
  async function logged<T>(run: () => T | Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      log.error("A request of an MCP client failed", {}, error);
      throw new ProtocolError(ProtocolErrorCode.InternalError, "Internal error");
    }
  }

  return {
    async answer(incoming: McpRequest<Who>): Promise<Response> {
      const { request, body = "\ufffd", callerId, signal, stopping } = incoming;
      const messages = messagesOf(body);
      const session = request.headers.get(SESSION_HEADER);
      for (const { method, params } of messages)
        if (method === "notifications/cancelled" && session !== null) calls.cancel(nameOf(callerId, session, params?.requestId));
      const isListening = messages.some(({ method }) => method === "subscriptions/listen");
      const read = new Request(request.url, {
        ...{ method: "POST", headers: request.headers, body },
        // Nothing changes while a service stops.
        signal: isListening ? AbortSignal.any([signal, stopping]) : signal,
      });
      const authInfo = { token: "", clientId: callerId, scopes: [], extra: { incoming } };
      const response = await handler.fetch(read, { authInfo });
      if (!response.ok || !messages.some(({ method }) => method === "initialize")) return response;
      const { status, headers } = response;
      return new Response(response.body, { status, headers: { ...Object.fromEntries(headers), [SESSION_HEADER]: ids.uuid() } });
    },
    close: (): Promise<void> => handler.close(),
  };
}

interface Message {
  readonly method?: unknown;
  readonly params?: { readonly requestId?: unknown } | null;
}

/** The messages of a body, unchecked. Empty for a body that is not JSON, which the SDK answers. */
function messagesOf(body: string): readonly Message[] {
  try {
    const messages = [JSON.parse(body)].flat() as (Message | null)[];
    return messages.filter((message) => message !== null && typeof message === "object");
  } catch {
    return [];
  }
}

/** The name of a call. Only its caller can name it. */
function nameOf(callerId: string, session: string, requestId: unknown): string {
  return JSON.stringify([callerId, session, requestId ?? null]);
}

/** The text, or as much of its beginning as an answer may have. */
function boundedText(text: string): string {
  if (Buffer.byteLength(text) <= ANSWER_BYTES) return text;
  // The decoder leaves out a character that is cut.
  const cut = new TextDecoder().decode(Buffer.from(text).subarray(0, ANSWER_BYTES), { stream: true });
  return `${cut}\n\n[Cut: this text is longer than ${ANSWER_BYTES / 1024} KiB]`;
}
