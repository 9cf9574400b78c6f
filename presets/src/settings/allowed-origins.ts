import type { Preset } from "@portico/core";
import type { Listeners } from "@portico/operator/listeners";
import type { PlatformSettings } from "./platform.ts";

/**
 * Origins of web pages that may call a surface: the origins of its settings, and the origin of its public address. The latter is the service's own
 * (open points 4), also if a reverse proxy changes the `Host` header.
 */
export function pagesOf(settings: {
  readonly allowedOrigins?: readonly string[];
  readonly publicUrl?: string | undefined;
}): readonly string[] {
  const { allowedOrigins = [], publicUrl } = settings;
  return publicUrl === undefined ? allowedOrigins : [...allowedOrigins, new URL(publicUrl).origin];
}

/**
 * Origins whose pages may call another surface of a process that serves the console: the origins of the settings, and the agent service's own, where the
 * console's page comes from. The latter is known once the agent service listens; until then only the settings count.
 */
export function withConsoleOrigin(allowedOrigins: readonly string[], listeners: Listeners): () => readonly string[] {
  return () => {
    const { agent } = listeners();
    return agent === undefined ? allowedOrigins : [...allowedOrigins, new URL(agent).origin];
  };
}

/** The console's page calls the other surfaces from the agent service's address, which browsers treat as another origin. */
export function consoleSurfaces({ workflow, agent }: PlatformSettings, listeners: Listeners): Required<Preset>["surfaces"] {
  const outside = pagesOf({ publicUrl: agent.publicUrl });
  return {
    proxy: { allowedOrigins: withConsoleOrigin(outside, listeners), otherOrigins: "answered" },
    workflow: { allowedOrigins: withConsoleOrigin([...pagesOf(workflow), ...outside], listeners) },
  };
}
