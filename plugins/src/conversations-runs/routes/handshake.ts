import type { ports } from "@portico/core";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Tells a client the version of the instance, the client's identity, and the available features. */
export function handshake(
  { runtime: { serverInstanceId }, areas }: ConversationServices,
  version: string,
): ConversationHandlers["handshake"] {
  const capabilities = capabilitiesOf(areas);
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
