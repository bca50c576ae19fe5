/** The few words that cluster links say about themselves. They travel as maps; messages travel as lists, so a first byte tells them apart. */
import { packFrame, unpackValue } from '../model/pack.ts';
import { CodecError, readRecord, readText } from '../model/wire-check.ts';

export type LinkControl =
  /** First frame of the side that dialled. `to`: whom it means to reach. */
  | { readonly kind: 'hello'; readonly from: string; readonly to: string; readonly token: string | null }
  | { readonly kind: 'welcome' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'ping' }
  | { readonly kind: 'pong' };

export const encodeLinkControl = (control: LinkControl): Uint8Array => packFrame(control);

/** True when the payload is a map. */
export const isLinkControl = (payload: Uint8Array): boolean =>
  payload.byteLength > 0 && (payload[0] as number) >= 0x80 && (payload[0] as number) < 0x90;

/** Throws {@link CodecError}. */
export function decodeLinkControl(payload: Uint8Array): LinkControl {
  const control = readRecord(unpackValue(payload), 'link control');
  switch (control['kind']) {
    case 'hello': {
      const token = control['token'] === null ? null : readText(control['token'], 'token', 4096);
      return { kind: 'hello', from: readText(control['from'], 'from'), to: readText(control['to'], 'to'), token };
    }
    case 'refused':
      return { kind: 'refused', reason: readText(control['reason'], 'reason', 4096) };
    case 'welcome':
    case 'ping':
    case 'pong':
      return { kind: control['kind'] };
    default:
      throw new CodecError('link control: no such kind');
  }
}
