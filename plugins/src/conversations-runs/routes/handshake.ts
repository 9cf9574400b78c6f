import { deprecate } from "node:util";
import type { ports } from "@portico/core";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

export interface HandshakeOptions {
  /** Of the instance. */
  readonly version: string;
  /** Replaces the declared areas. Deprecated. */
  readonly capabilities?: Readonly<Record<string, boolean>> | undefined;
}

/** Tells a client the service's version, the client's identity, and the available features. */
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

/** The declared areas of the app. Clients read the names of open points 4 even if no area is behind them. */
function capabilitiesOf(areas: readonly ports.Area[]) {
  const none = { webhookManagement: false, media: false, attachments: false, realtime: false, safeTokens: false };
  return { ...none, ...Object.fromEntries(areas.flatMap(({ capabilities }) => capabilities.map((each) => [each, true]))) };
}

const warnOfCapabilities = deprecate(
  () => {},
  "conversationsRuns({ capabilities }): remove it. Each plugin declares its own capabilities.",
  "PORTICO_CAPABILITIES_OPTION",
);
