import { mount } from 'svelte';
import App from './App.svelte';
import { watchInput } from './session.svelte';
import './styles.css';

const target = document.getElementById('app');
if (target) {
  watchInput();
  target.replaceChildren();
  mount(App, { target });
}
