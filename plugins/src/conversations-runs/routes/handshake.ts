import { deprecate } from "node:util";
import type { ports } from "@portico/core";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

export interface HandshakeOptions {
  /** Of the instance. */
  readonly version: string;
  /** In place of what areas declare: an option that goes. */
  readonly capabilities?: Readonly<Record<string, boolean>> | undefined;
}

/** Tells a client what it talks to, who it is, and what it can do here. */
export function handshake(
  { runtime: { serverInstanceId }, areas }: ConversationServices,
  { version, capabilities: written }: HandshakeOptions,
): ConversationHandlers["handshake"] {
  if (written) warnOfCapabilities();
  const capabilities = { ...capabilitiesOf(areas), ...written };
  return ({ who }) => ({
    protocolVersion: 1,
    serverInstanceId,
    version,
    identity: { ...(who.userId !== undefined && { userId: who.userId }), role: who.role },
    capabilities,
  });
}

/** What the areas of the app declare. Clients read the words of open points 4 whether or not an area stands behind them. */
function capabilitiesOf(areas: readonly ports.Area[]) {
  const none = { webhookManagement: false, media: false, attachments: false, realtime: false, safeTokens: false };
  return { ...none, ...Object.fromEntries(areas.flatMap(({ capabilities }) => capabilities.map((each) => [each, true]))) };
}

const warnOfCapabilities = deprecate(
  () => {},
  "conversationsRuns({ capabilities }): remove it. Each plugin declares its own capabilities.",
  "PORTICO_CAPABILITIES_OPTION",
);
