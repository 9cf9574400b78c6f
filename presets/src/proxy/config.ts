/** The configuration of preset `proxy`: all keys of a platform, so that one file serves every preset. */
export { type PlatformConfig as ProxyConfig, platformSchema as proxySchema } from "../settings/platform.ts";
