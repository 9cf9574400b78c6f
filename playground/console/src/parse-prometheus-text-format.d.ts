/** The package brings no types: what of its answer is used here. */
declare module "parse-prometheus-text-format" {
  export interface Sample {
    readonly labels?: Readonly<Record<string, string>>;
    readonly value: string;
  }
  /** Of a text without types. A name comes again where another came between. */
  export default function parsePrometheusTextFormat(
    text: string,
  ): readonly { readonly name: string; readonly metrics: readonly Sample[] }[];
}
