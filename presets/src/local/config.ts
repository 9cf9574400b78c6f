/** The configuration of preset `local`: all keys of a platform, so that one file serves every preset. */
export { type PlatformConfig as LocalConfig, platformSchema as localSchema } from "../settings/platform.ts";
