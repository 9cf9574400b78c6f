import { defineManyPort, type ManyPort } from "../grammar/port.ts";

/** A provider of tools: built in, an MCP server, a plugin. */
export interface ToolSource {
  /** Names the source in logs; unique among the sources of an app. */
  readonly id: string;
  /**
   * Its current tools. They may change while the app runs. `caller` is the user for whom they are listed, if there is one: a source may have
   * other tools for each. Throws ToolsUnavailable.
   */
  list(signal?: AbortSignal, caller?: Pick<ToolCaller, "userId">): Promise<readonly ToolDefinition[]>;
  /** Whether a tool with this ID could be one of its own, also while it cannot list them. Default: always. */
  owns?(toolId: string): boolean;
  /** What is wrong now, as far as it knows without waiting. Default: nothing. */
  problems?(): readonly ToolProblem[];
  /**
   * Run a tool. A tool that fails gives a result with `isError`, for the model to read. Throws ToolNotFound for an ID that is not
   * in `list`, ToolArgumentsInvalid for arguments that violate `inputSchema`, ToolsUnavailable, or the signal's reason.
   */
  call(call: ToolCall, signal: AbortSignal): Promise<ToolResult>;
  /**
   * Read a document that it offers as context. A document that cannot be read gives a result with `isError`, for the model to read. Throws
   * ToolArgumentsInvalid for missing and unknown values, ToolsUnavailable, or the signal's reason. Default: it has no documents.
   */
  readResource?(read: ResourceRead, signal: AbortSignal): Promise<ToolResult>;
  /** Its current templates of messages, as `list`. Default: it has none. */
  listPrompts?(signal: AbortSignal, caller: Pick<ToolCaller, "userId">): Promise<readonly PromptDefinition[]>;
  /**
   * The message that a template makes. Throws ToolNotFound for an ID that is not in `listPrompts`, ToolArgumentsInvalid for missing and unknown
   * arguments, PromptRefused, ToolsUnavailable, or the signal's reason.
   */
  fillPrompt?(prompt: PromptFill, signal: AbortSignal): Promise<FilledPrompt>;
  /** How a person connects the source to an account. Default: it needs no account. */
  readonly authorization?: ToolAuthorization | undefined;
}

/** How a person gives a source access to an account at its service, by OAuth 2.1. No function returns or logs a token. */
export interface ToolAuthorization {
  /** `instance`: one account for all users. `user`: each user connects their own account, and `userId` is required everywhere. */
  readonly per: "instance" | "user";
  /** Whether the account is connected now. */
  status(userId?: string): Promise<ToolGrant>;
  /**
   * Begin to connect. The person opens the address that is returned, agrees there, and comes back to `redirectUrl` with a code and a state.
   * Throws ToolAuthorizationFailed, or the signal's reason.
   */
  begin(wanted: BeginAuthorization, signal: AbortSignal): Promise<BegunAuthorization>;
  /** Finish with what the person came back with. A state is valid once. Throws ToolAuthorizationFailed, or the signal's reason. */
  finish(received: FinishAuthorization, signal: AbortSignal): Promise<ToolGrant>;
  /** Forget the access, and ask the service to revoke it. Returns false without access. */
  disconnect(userId: string | undefined, signal: AbortSignal): Promise<boolean>;
}

/** The access of a source to an account. */
export interface ToolGrant {
  /** `ended`: the service refused the access, so the person must connect again. */
  readonly state: "connected" | "not_connected" | "ended";
  /** Milliseconds since 1970 at which the person connected it. */
  readonly connectedAt?: number | undefined;
  /** The scopes that the service granted, separated by spaces, if it names them. */
  readonly scope?: string | undefined;
}

/** Who connects, and where the service sends the person afterwards. */
export interface BeginAuthorization {
  readonly userId?: string | undefined;
  /** The person who connects an account of the instance: only the same one may finish. Default: the command line. */
  readonly by?: string | undefined;
  /** An address that the service will know as one of this client. */
  readonly redirectUrl: string;
  /** Whether the registration of this client is kept for later connections with the same `redirectUrl`. Default: true. */
  readonly keepsClient?: boolean | undefined;
}

/** A connection that a person must agree to. */
export interface BegunAuthorization {
  /** Where the person agrees. It contains the state, which must not be logged. */
  readonly url: string;
  readonly state: string;
  /** Milliseconds since 1970 after which the state is invalid. */
  readonly expiresAt: number;
}

/** What a person came back with. */
export interface FinishAuthorization {
  readonly userId?: string | undefined;
  readonly by?: string | undefined;
  readonly state: string;
  readonly code?: string | undefined;
  /** The issuer that the service named (RFC 9207). */
  readonly iss?: string | undefined;
  /** The error that the service sent instead of a code. */
  readonly error?: string | undefined;
}

/** Why an account could not be connected. */
export type AuthorizationFault =
  /** The service, or its description of OAuth, cannot be reached or read. */
  | "unreachable"
  /** A description leads to an address that must not be called. */
  | "address_refused"
  /** The service does not support what is required: PKCE with S256, or registration of clients. */
  | "unsupported"
  /** The service refused to register this client. */
  | "registration_refused"
  /** The state is unknown, used, expired, or of another user. */
  | "state_invalid"
  /** The person or the service refused. */
  | "refused";

/** Thrown when an account cannot be connected. The message contains no text of the service. */
export class ToolAuthorizationFailed extends Error {
  override readonly name = "ToolAuthorizationFailed";
  readonly code: AuthorizationFault;

  constructor(code: AuthorizationFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Why a source cannot offer a tool, or does not check all of its arguments. */
export interface ToolProblem {
  /** Absent: the problem is of the source. */
  readonly toolId?: string | undefined;
  /**
   * `unavailable`: the source cannot be reached, and offers nothing. `left_out`: a tool cannot be offered. `unchecked`: a tool is offered, and
   * only its server checks some patterns of its arguments.
   */
  readonly kind: "unavailable" | "left_out" | "unchecked";
  /** The reason, for the owner of an agent. It contains no secret and no address. */
  readonly message: string;
}

/** Description of a tool. */
export interface ToolDefinition {
  /** Unique in an app; tools of an MCP server are `server/tool`. */
  readonly id: string;
  /** Its name for the model: letters, digits, `_`, `-`. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. Its type is an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly riskLevel: RiskLevel;
  /** Never run without a person's consent (open points 3). */
  readonly requiresConfirmation: boolean;
  /** A second call with the same arguments has no further effect. Read-only tools are idempotent, too. */
  readonly idempotent: boolean;
  /**
   * Calls may run in parallel with others of the same source, although the tool is not idempotent. Default: false. The calls of a
   * turn to such tools of one source then run one after another.
   */
  readonly concurrent?: boolean | undefined;
}

/** How much harm a call of a tool can do. */
export type RiskLevel = "low" | "medium" | "high" | "critical";

/** One call of a tool. */
export interface ToolCall {
  readonly toolId: string;
  readonly arguments: unknown;
  readonly caller: ToolCaller;
}

/** The user or agent that a tool runs for. Grants no permission by itself. */
export interface ToolCaller {
  readonly userId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly runId?: string | undefined;
  /** Provider configuration that the agent uses. */
  readonly providerId?: string | undefined;
  /**
   * Nesting depth of the workflow run behind this call, in a chain of runs that begin each other, also through agents: 0 for the
   * first run of a chain; absent without a run. It comes from the work itself, never from a model. A tool that begins a run adds
   * one to it.
   */
  readonly workflowDepth?: number | undefined;
}

/** One document to read. */
export interface ResourceRead {
  /** `server/URI`, for an MCP server. The URI may be a template (RFC 6570). */
  readonly resourceId: string;
  /** The values of the template's variables. */
  readonly values: Readonly<Record<string, string>>;
  readonly caller: ToolCaller;
}

/** A template of a message, which a person chooses. */
export interface PromptDefinition {
  /** Unique in an app; prompts of an MCP server are `server/prompt`. */
  readonly id: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly arguments: readonly {
    readonly name: string;
    readonly description?: string | undefined;
    readonly isRequired: boolean;
  }[];
}

/** A template with its arguments. */
export interface PromptFill {
  readonly promptId: string;
  readonly arguments: Readonly<Record<string, string>>;
  readonly caller: Pick<ToolCaller, "userId" | "agentId">;
}

/** A message that a person can change and send. */
export interface FilledPrompt {
  readonly text: string;
  /** Parts of the template that a message of a person cannot contain, such as images and answers. */
  readonly leftOut: number;
}

/** The answer of a tool. */
export interface ToolResult {
  readonly content: readonly ToolContent[];
  readonly isError: boolean;
}

/** One part of a tool's answer. */
export type ToolContent =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly mimeType: string; readonly data: string };

/** Thrown for an ID that the source does not offer. */
export class ToolNotFound extends Error {
  override readonly name = "ToolNotFound";
}

/** Thrown for arguments that violate the tool's schema. The message names the paths, not the values. */
export class ToolArgumentsInvalid extends Error {
  override readonly name = "ToolArgumentsInvalid";
}

/** Thrown when a source does not fill in a prompt. The message is the source's own, for the person who chose the prompt. */
export class PromptRefused extends Error {
  override readonly name = "PromptRefused";
}

/** Thrown when the source cannot be reached now. */
export class ToolsUnavailable extends Error {
  override readonly name: string = "ToolsUnavailable";
}

/**
 * Thrown when the source has no access to an account, or lost it: a person must connect it again. The message begins with the code, and may be
 * shown to a model.
 */
export class ToolsNotConnected extends ToolsUnavailable {
  override readonly name = "ToolsNotConnected";
  readonly code = "connect_again";

  constructor(about: string, options?: ErrorOptions) {
    super(`connect_again: ${about} has no access to an account, or lost it. A person must connect it again.`, options);
  }
}

/** The port of sources of tools. */
export const tools: ManyPort<ToolSource> = defineManyPort<ToolSource>("tools");
