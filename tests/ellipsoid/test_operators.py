def test_the_operators_of_a_fit_do_not_depend_on_the_number_of_classes_or_samples(monkeypatch):
    for module in (devices, left_out):
        monkeypatch.setattr(module, "chunk_bytes", lambda device: 2**60)
    monkeypatch.setattr(closed_form, "TIE", -1.0)  # tied shares cost a likelihood
    monkeypatch.setattr(tiles, "reads_are_free", lambda device: False)  # as on a GPU
    # The axes of the classes are computed on the host.
    monkeypatch.setattr(
        covariance, "eigh_of_many", lambda matrices, sizes: map(torch.from_numpy, np.linalg.eigh(matrices.numpy()))
    )
    few, many, larger = counted_fit(40, 12), counted_fit(80, 12), counted_fit(40, 15)
    for others in (many, larger):
        assert others.total() == pytest.approx(few.total(), rel=0.001)
    assert many.total() < 12_000
    # What makes the host of a GPU wait.
    assert sum(many[name] for name in ("_local_scalar_dense", "nonzero", "_unique2", "bincount")) < 200
    # The axes of W.
    assert many["_linalg_eigh"] == 1
