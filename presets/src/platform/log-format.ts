import type { PlatformSettings } from "../settings/platform.ts";

/** `auto`: a person reads text, a machine JSON. */
export function logFormat(format: PlatformSettings["log"]["format"]): "text" | "json" {
  if (format !== "auto") return format;
  return process.stderr.isTTY ? "text" : "json";
}
